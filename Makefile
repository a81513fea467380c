# Every target works on a machine that has Go and nothing else, but for race and compare,
# which need a C compiler.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all help fmt vet lint imports portable tidy install test race fuzz bench allocs compare torture jobctl examples quickstart checksum webhook ledger order onboarding crawl

# The command jobctl is a module of its own, so that who uses the library has none of what
# a terminal needs. IN_BOTH runs a command of the go tool in both.
IN_BOTH = @both() { echo "$$@"; "$$@" && (cd cmd/jobctl && "$$@"); }; both

all: fmt vet lint imports portable tidy test

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

fmt: ## no file that gofmt would change
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change: $$files"; exit 1; fi

vet:
	$(IN_BOTH) go vet ./...

lint:
	$(IN_BOTH) go run $(STATICCHECK) ./...

imports: ## the direction of imports
	sh .ci/imports

portable: ## it builds for other systems, and where an int has 32 bits
	$(IN_BOTH) env GOOS=linux GOARCH=386 go build ./...
	$(IN_BOTH) env GOOS=windows go build ./...
	$(IN_BOTH) env GOOS=darwin go build ./...

tidy: ## go.mod and go.sum are as go mod tidy leaves them
	sh .ci/tidy

install: ## jobctl and an app, installed from the last commit with an empty module cache
	sh .ci/install

test:
	$(IN_BOTH) go test ./...

race:
	$(IN_BOTH) go test -race -shuffle=on -timeout 40m ./...

FUZZTIME = 20s
fuzz: ## every fuzz target for FUZZTIME
	@for module in . cmd/jobctl; do for pkg in $$(go list -C $$module ./...); do \
		for target in $$(go test -C $$module -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			go test -C $$module -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done; done

BENCHTIME = 1s
bench: ## every Go benchmark for BENCHTIME; the comparison with other queues is in bench
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

allocs: ## allocations are as stored, and are compared indeed; ARGS=-update stores them
	@found=$$(go test -count=1 -v -run '^TestAllocations$$' . ./bolt ./worker $(ARGS)); failed=$$?; \
	echo "$$found" | grep -v '^=== '; test $$failed = 0 && ! echo "$$found" | grep -q -e '--- SKIP'

compare: ## the comparison with other queues and workflows: checked, and run on small cases
	cd bench && go vet ./... && go run $(STATICCHECK) ./... && go test ./... && go run . -quick

# The seeds follow from the commit: each commit tries others, and trying a commit again
# tries the same.
torture: ## every family of faults, as much as for every change; TORTURE=-night for the night
	go run ./internal/torture -from $$((0x$$(git rev-parse HEAD | cut -c1-10))) $(TORTURE)

jobctl: ## the command, built as bin/jobctl
	go build -C cmd/jobctl -o ../../bin/jobctl .

examples: quickstart checksum webhook ledger order onboarding crawl

quickstart:
	go run ./examples/quickstart

checksum: ## the sums of the library's own source, checked by sha256sum
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/checksum -state "$$state" bolt && \
	sha256sum -c --quiet --strict "$$state/manifest.sha256"

webhook: ## an endpoint with every fault, and what becomes of the deliveries
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/webhook -state "$$state/jobs.db"

ledger: ## transfers between accounts; it checks its books itself
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/ledger -state "$$state/ledger.db"

order: ## an order that waits for its approval, and is approved
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/order -state "$$state" place 1042 12900 && \
	go run ./examples/order -state "$$state" approve 1042

onboarding: ## a week of mails, in days of 200 ms
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/onboarding -db "$$state/onboarding.db" -day 200ms ada@example.com

crawl: ## the documents of the library
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/crawl -db "$$state/crawl.db"
