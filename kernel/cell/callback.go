package cell

// keptCallbacks is how many ended callbacks' goroutines still belong to their cells.
const keptCallbacks = 256

// callback is f for the widgets, which call it when no cell may be running. What it
// shows is output of the cell that the calling goroutine belongs to, and an interrupt
// ends it by itself: the next call of it runs.
func (c *child) callback(f func()) func() {
	of := c.current().root()
	c.waits.stirred.Store(true)
	return func() {
		o := c.newCell(of.id, false)
		o.of, o.over = of, true
		c.mark(o)
		defer clearLabel()
		c.mu.Lock()
		c.callbacks[o] = true
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			delete(c.callbacks, o)
			c.called = append(c.called, o)
			var old *cellOutput
			if len(c.called) > keptCallbacks {
				old, c.called = c.called[0], c.called[1:]
			}
			c.mu.Unlock()
			if old != nil {
				c.retire(old)
			}
		}()
		defer o.flushPartial()
		defer o.run.Catch()
		f()
	}
}

// interruptCallbacks ends the callbacks that are running.
func (c *child) interruptCallbacks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o := range c.callbacks {
		o.interrupt()
	}
}

// retire forgets whose the goroutines of o were: the latest cell's from now on.
func (c *child) retire(o *cellOutput) {
	c.labels.Delete(o.label.pointer)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.captures {
		c.labels.Delete(l.pointer)
		c.captures.Delete(l.pointer)
	}
}
