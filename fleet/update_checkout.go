package fleet

func (u *updater) checkout() (source, string, error) { return nil, "", ErrCurrent }
