package cli

import "deltafin/kernelspec"

type uninstallCmd struct {
	placeFlags
}

func (uninstallCmd) Help() string {
	return `Removes what deltafin install wrote with the same options, and nothing that another kernel owns. Example:

    deltafin uninstall --prefix .venv`
}

func (c uninstallCmd) Run(p *process) error {
	at, err := c.place(p)
	if err != nil {
		return err
	}
	dir, err := kernelspec.Uninstall(at.kernels, c.Name)
	if err != nil {
		return err
	}
	p.printf("removed %s\n", dir)
	return nil
}
