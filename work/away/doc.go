// Package away has agents on other hosts of the team work on a repository of the owner's: what they have
// committed in a repository of theirs that shares commits with it is brought here, and then looked at, checked
// and landed as the work of agents here. The branch of agent3@build1 is refs/netsky/hosts/build1/agent3.
//
// One request serves all: a host is asked how an agent's work is, and sends, as a pack, the commits of its
// branch that the asker lacks. The request may bring the commit that work is to begin at. At neither end
// is anything changed but objects and refs below refs/netsky: what is checked out stays as it is. What is not
// committed does not cross; it is counted.
//
// What has come is not believed: it is read into a directory of its own, with the checks that git has for foreign
// objects and bounds on what it may come to, and added to the repository only if all of the commit is there.
// Names that a host tells are shown, and never used.
//
// A crash leaves a scratch directory, or objects that nothing refers to, which git removes; the ref and the
// record are as before, or one or both are as told, and the next look at the host makes both so.
package away
