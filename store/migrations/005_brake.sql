-- What the phone's brake counts, whatever else arrives.
CREATE INDEX phone_heard_verdict ON phone_heard (line, chat, verdict, at);
