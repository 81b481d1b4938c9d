package bus

// Obeyed reports whether the receiver has obeyed a shutdown, so that Next would
// return ErrShutdown: for one who has no time for Next.
func (r *Receiver) Obeyed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shut != nil && r.shut.obeyed
}
