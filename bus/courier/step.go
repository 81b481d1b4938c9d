package courier

// step is called between two durable steps, with a name, so that a test can end the
// process there.
var step = func(name string) {}
