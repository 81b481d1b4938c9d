package wire

// Allowed returns what a host may publish and what it may subscribe to. A host with the
// role owner may also ask deeds of others and see what they say of themselves; the owner's
// own host also writes the team document and hears who asks to join.
//
// It is what these calls of a nats.go client need, and no more:
//
//	mail out   js.PublishMsgAsync to MailSubject(host, …); js.Stream(MailStream(host)) and its Info
//	mail in    js.Consumer(MailStream(…), host), its Info, Fetch, Messages and Consume; Ack, DoubleAck, Nak, InProgress, Term
//	files      PutFile, GetFile, DropFile
//	states     States, PutState of StateKey(host), NeedsKey(host) and LogKey(host), GetState of the own ones
//	team       js.KeyValue(Team), Get of TeamKey; a subscription to Told(Team, TeamKey)
//	deeds      a subscription to DeedSubject(host, "*") and Respond
//	owner      Request on DeedSubject(…, host); GetState of all keys; a subscription to Told(Hosts, ">")
//	its host   Put of TeamKey; a subscription to JoinSubject + ".>" and Respond
//
// No host makes consumers or streams: [Provision] does. Who makes a consumer chooses the
// subject that it delivers to, and who sends a request chooses that of the reply; the server
// looks at neither, and would write there for them. So these lists alone keep nobody apart
// who shares an account with the streams: netsky's own server gives each host an account
// that imports what is listed here, and nothing else.
func Allowed(host string, owner, owners bool) (publish, subscribe []string) {
	const api = "$JS.API."
	mail, files := MailStream(host), FileStream(host)
	publish = []string{
		MailSubject(host, "*"), api + "STREAM.INFO." + mail,
		api + "CONSUMER.INFO.*." + host, api + "CONSUMER.MSG.NEXT.*." + host, "$JS.ACK.*." + host + ".*.*.*.*.*",
		FileSubject(host, "*", "*", "*"), api + "STREAM.INFO." + files, api + "STREAM.PURGE." + files,
		api + "DIRECT.GET.*." + FileSubject("*", host, "*", "*"),
		api + "STREAM.INFO.KV_" + Hosts, api + "STREAM.INFO.KV_" + Team, lastOf(Team, TeamKey),
	}
	subscribe = []string{Inbox(host) + ".>", DeedSubject(host, "*"), Told(Team, TeamKey)}
	for _, key := range hostKeys {
		publish = append(publish, keySubject(Hosts, host+"."+key))
	}
	if owner || owners {
		publish = append(publish, DeedSubject("*", host), lastOf(Hosts, "*.*"))
		subscribe = append(subscribe, Told(Hosts, ">"))
	} else {
		publish = append(publish, lastOf(Hosts, host+".*"))
	}
	if owners {
		publish = append(publish, keySubject(Team, TeamKey))
		subscribe = append(subscribe, JoinSubject+".>")
	}
	return publish, subscribe
}

// AllowedJoining is Allowed for a host that has yet to join.
func AllowedJoining() (publish, subscribe []string) {
	return []string{JoinSubject + ".>"}, []string{JoinInbox + ".>"}
}

func keySubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// lastOf is where the value of a key is asked for.
func lastOf(bucket, key string) string {
	return "$JS.API.DIRECT.GET.KV_" + bucket + "." + keySubject(bucket, key)
}
