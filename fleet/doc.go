// Package fleet holds what an owner does with all of a netsky: asking an agent and following
// the question to its answer, ending a turn, cancelling a message, registering the home with
// the service manager, and removing what netsky made.
//
// It starts nothing that was not asked for. What a crash leaves stands with each deed.
package fleet
