package cli

type installCmd struct{}

func (installCmd) Run(p *process) error { return nil }

type uninstallCmd struct{}

func (uninstallCmd) Run(p *process) error { return nil }






