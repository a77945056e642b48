package cell

import (
	"context"
	"runtime/pprof"

	"deltafin/kernel"
)

// A capture is where marked goroutines show things instead of their cell's output.
type capture struct {
	to    kernel.Output
	label label
}

// shows is where the calling goroutine shows things.
func (c *child) shows() kernel.Output {
	if v, ok := c.captures.Load(profLabel()); ok {
		return v.(capture).to
	}
	return c.current()
}

// captured runs f with to in the place of the cell's output. A cell has one mark for
// each to, however often it captures.
func (c *child) captured(to kernel.Output, f func()) {
	back := context.Background() // the calling goroutine's own labels
	if v, ok := c.captures.Load(profLabel()); ok {
		back = v.(capture).label.ctx
	} else if o, ok := c.labels.Load(profLabel()); ok {
		back = o.(*cellOutput).label.ctx
	}
	defer pprof.SetGoroutineLabels(back)
	o := c.current()
	o.mu.Lock()
	l, ok := o.captures[to]
	if !ok {
		l = setLabel(o.id)
		if o.captures == nil {
			o.captures = map[kernel.Output]label{}
		}
		o.captures[to] = l
		c.labels.Store(l.pointer, o)
		c.captures.Store(l.pointer, capture{to, l})
	}
	o.mu.Unlock()
	pprof.SetGoroutineLabels(l.ctx)
	f()
}
