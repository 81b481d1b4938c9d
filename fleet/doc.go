// Package fleet holds the deeds: what can be done with a netsky as a whole, and who may do it.
// Verbs, the tools of models, the service manager's unit and the daemon, which starts agents again,
// call it in their own process; only a check that a model asks for runs in the daemon, as it outlives
// who asked ([Checks]).
//
// A deed asks what has to be asked through a [UI] before it changes anything, reports what it does as
// steps, and returns what it did. What a crash leaves stands with each deed.
package fleet
