package doctor

import (
	"context"
	"errors"
	"fmt"

	"netsky/daemon/upkeep"
	"netsky/home"
	"netsky/internal/words"
	"netsky/store"
)

// Bounds of checkGrowth: a month of steady use stays below.
const (
	manyLogs  = 96 << 20 // six files of 10 MiB, and what the daemon printed
	manyState = 256 << 20
	mailSlack = 4 // the bound for mail is exceeded by a quarter before that is reported
)

// checkGrowth compares sizes with what the daemon's upkeep leaves.
func checkGrowth(_ context.Context, e *exam) []Finding {
	s, err := e.files()
	if err != nil && !cut(err) {
		return nil // that of files says why
	}
	records, most := s.bytes[home.DBFile]+s.bytes[home.DBFile+"-wal"], e.Upkeep.Bounds.Bytes
	if most == 0 {
		most = e.Config.Records.MaxBytes
	}
	most += most/4 + 16<<20 // free pages, and SQLite's log
	mail, files := s.bytes["channels"], s.files["channels"]
	var list []Finding
	beyond := func(prunes bool, text, do string, args ...any) {
		f := Finding{Level: Warn, Text: fmt.Sprintf(text, args...), Do: do}
		if prunes && e.Upkeep.Home != (home.Dir{}) {
			f.Do, f.fix = "the daemon removes what is old, once an hour; `netsky doctor --fix` does it now; "+do, e.prune
		}
		list = append(list, f)
	}
	if n := s.bytes[home.LogDir]; n > manyLogs {
		beyond(false, "logs %s, normal is up to %s", "they are rotated at 10 MiB; look at what else is in "+e.tilde(e.Home.Path(home.LogDir)), words.Size(n), words.Size(manyLogs))
	}
	if records > most {
		beyond(true, "records %s, normal is up to %s", "if that is not enough, shorten [bus] keep and [records] keep", words.Size(records), words.Size(most))
	}
	if mail > upkeep.MailBytes+upkeep.MailBytes/mailSlack || files > upkeep.MailFiles+upkeep.MailFiles/mailSlack {
		beyond(true, "mail %s in %d files, normal is up to %s in %d", "unread mail and mail that waits stays: see mail and mailboxes", words.Size(mail), files, words.Size(upkeep.MailBytes), upkeep.MailFiles)
	}
	if n := s.bytes["state"]; n > manyState {
		beyond(true, "state files %s, normal is up to %s", "look at what is large in "+e.tilde(e.Home.Path("state")), words.Size(n), words.Size(manyState))
	}
	if len(list) == 0 {
		list = append(list, ok("records %s of up to %s, mail %s in %d files, logs %s, state %s: normal", words.Size(records), words.Size(most), words.Size(mail), files, words.Size(s.bytes[home.LogDir]), words.Size(s.bytes["state"])))
	}
	return list
}

// prune makes a pass of the upkeep, as the daemon does every hour.
func (e *exam) prune(ctx context.Context) (string, error) {
	db, err := store.Open(ctx, e.Home)
	if err != nil {
		return "", err
	}
	defer db.Close()
	careful, err := e.Upkeep.Careful()
	if err != nil {
		return "", err
	}
	removed, err := careful.Pass(ctx, db)
	if errors.Is(err, home.ErrLocked) {
		return "", errors.New("the daemon is at it; run `netsky doctor` again in some minutes")
	}
	if removed == (upkeep.Removed{}) {
		return "", err
	}
	return "removed what is old: " + removed.String(), err
}
