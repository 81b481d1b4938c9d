// Package team says which hosts belong together: their names, keys and roles.
//
// The owner's host signs the team document; every host has a copy of it, and the owner's key
// pinned since it joined. So whoever carries the document can neither add a host nor bring
// back one that was removed.
//
// A host joins with an Applicant, which speaks with the Registrar of the owner's host over a
// connection to the server. Neither believes the server: both show a code of eight digits
// that is made of both keys, and the owner compares them.
package team
