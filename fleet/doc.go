// Package fleet holds the deeds: what can be done with a netsky as a whole, and who may do it.
// Verbs, the tools of models, the pages, the phone and the service manager's unit call its methods;
// none of them executes netsky.
//
// A deed asks what has to be asked through a [UI] before it changes anything, reports what it does as
// steps, and returns what it did. What a crash leaves stands with each deed.
package fleet
