package scenario

// gate is a place where a flow waits for the test.
type gate struct{ reached, open chan struct{} }

// gate closes a gate until its first visitor was let through.
func (k *kit) gate(name string) *gate {
	g := &gate{make(chan struct{}), make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gates[name] = g
	return g
}

// at is called by flows at a place that may have a gate.
func (k *kit) at(name string) {
	k.mu.Lock()
	g, q, dead := k.gates[name], k.q, k.dead // of this life
	delete(k.gates, name)
	k.mu.Unlock()
	if g == nil {
		return
	}
	close(g.reached)
	select {
	case <-g.open:
	case <-q.Done():
		if k.ending.Load() {
			<-dead
		}
	}
}
