# The few commands that people type; each is a script or a line of go.
.PHONY: build test test-live lint bench docs release

build: ## netsky, into bin/
	. scripts/tools && go_there && build . "$(CURDIR)/bin/netsky"

test: ## what needs only Go, a C compiler, git and tmux
	go test ./...

test-live: ## all tests: installs the programs that they need
	scripts/test

lint: ## what only reads the source
	scripts/lint

bench: ## measures, and writes docs/performance.md
	scripts/bench -w

docs: ## the generated documents
	go test ./cli -run Docs -update

release: ## packages of HEAD, into dist/; docs/release.md says more
	scripts/release
