# Every target needs Go alone, except race and compare, which need a C compiler.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all help fmt vet lint imports portable tidy install test modules race fuzz bench allocs oracle compare torture pgtorture pgscenarios deploys jobctl examples quickstart checksum webhook ledger order onboarding crawl crawler reports pictures

# The command jobctl and packages postgres, sqlite, redis, beanstalkd, jetstream, servicebus, prometheus, otel, and workflowvet are modules of their own, so that users of
# the library do not depend on what a terminal, a database, and a monitor need. The examples are one, because
# some run on a server, and so are the tests of the dashboard in a browser. PACKAGES are those of every module but
# bench, which the workspace joins, so that one command has them all: it loads what they share once, and no processor
# waits at the end of a module. Those that wait for something long come first.
MODULES = postgres sqlite dashboard/browsertest cmd/jobctl . jetstream servicebus redis beanstalkd workflowvet prometheus otel examples
PACKAGES = $(subst ././,./,$(MODULES:%=./%/...))

all: fmt vet lint imports portable tidy test ## run what a change must pass

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

fmt: ## check that gofmt would change no file
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change: $$files"; exit 1; fi

vet: ## run go vet, and workflowvet over packages with workflows
	go vet $(PACKAGES)
	@tool=$$(mktemp -d) && trap 'rm -rf "$$tool"' EXIT && go build -o "$$tool/" ./workflowvet && \
	go vet -vettool="$$tool/workflowvet" ./examples/... ./docs/guide ./workflow/workflowtest && \
	cd bench && go vet -vettool="$$tool/workflowvet" ./workflows

lint: ## run staticcheck
	go run $(STATICCHECK) $(PACKAGES)

imports: ## check which package imports which
	sh .ci/imports

portable: ## compile for Windows, macOS, and 32 bits, and link the command
	for os in linux/386 windows/amd64 darwin/amd64; do export GOOS=$${os%/*} GOARCH=$${os#*/} && \
	go list -export -f '{{""}}' $(PACKAGES) && go build -o /dev/null ./cmd/jobctl || exit 1; done

tidy: ## check that go mod tidy would change nothing
	sh .ci/tidy

install: ## install jobctl and an app from the last commit, with an empty module cache
	sh .ci/install

test: ## run all tests
	go test $(PACKAGES)

# Target vet has the checks that go test would repeat.
modules: MODULES := $(filter-out .,$(MODULES))
modules: ## run the tests of all modules but the library
	go test -vet=off -p 3 -timeout 40m $(PACKAGES)

# Otherwise each process sleeps for a second before it exits, and tests start hundreds. A race
# that has been found still ends it with an error.
race: export GORACE := atexit_sleep_ms=0 $(GORACE)
# The driver of sqlite is translated C, which takes minutes to build for the detector. The server of jetstream runs in
# the process of its tests, whose leases are in real time, and the detector slows it down. The tests of the dashboard in a
# browser wait for the browser: those of package dashboard run under the detector. workflowvet has no goroutines, and its
# tests check the types of all that package workflow imports.
race: MODULES := $(filter-out sqlite jetstream dashboard/browsertest workflowvet,$(MODULES))
race: ## run all tests under the race detector
	go test -race -vet=off -p 3 -shuffle=on -timeout 40m $(PACKAGES)

FUZZTIME = 20s
fuzz: ## run every fuzz target for FUZZTIME
	@for module in $(MODULES); do for pkg in $$(go list -C $$module ./...); do \
		for target in $$(go test -C $$module -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			go test -C $$module -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done; done

# Packages without benchmarks are left out, since linking their tests takes longer than the rest.
BENCHTIME = 1s
bench: ## run every Go benchmark for BENCHTIME; ARGS=-short shortens long ones
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(ARGS) \
		$$(grep -rl --include='*_test.go' '^func Benchmark' . | grep -v -e '^./cmd/' -e '^./bench/' | xargs -n1 dirname | sort -u)

oracle: ## compare the times of schedules with those that a look at every minute from 1990 to 2060 finds
	go test ./schedule -count=1 -run NextIsThatOfTheOracle -whole

allocs: ## compare allocations with the stored ones; ARGS=-update stores them
	@found=$$(go test -count=1 -v -run '^TestAllocations$$' . ./bolt ./worker $(ARGS)); failed=$$?; \
	echo "$$found" | grep -v '^=== '; test $$failed = 0 && ! echo "$$found" | grep -q -e '--- SKIP'

compare: ## check the module in bench, and run its small cases
	cd bench && go vet ./... && go run $(STATICCHECK) ./... && go test ./... && go run . -quick

# The seeds follow from the commit: each commit tries others, and the same commit tries the
# same ones again.
torture: ## run every family of faults; TORTURE=-night runs for hours
	go run ./internal/torture -from $$((0x$$(git rev-parse HEAD | cut -c1-10))) $(TORTURE)

pgtorture: ## run the families of faults over PostgreSQL; TORTURE=-night runs for hours
	go run -C postgres ./internal/torture -from $$((0x$$(git rev-parse HEAD | cut -c1-10))) $(TORTURE)

pgscenarios: ## run the scenarios of workflows over PostgreSQL, and move a large backlog there and back
	PAWL_SLOW_TESTS=1 go test -C postgres -timeout 60m -run '^(TestScenarios|TestBacklogMoves)$$' .

deploys: ## stop README's program five times amid a job
	PAWL_SLOW_TESTS=1 go test . -run ReadmeProgramFiveDeploys

jobctl: ## build bin/jobctl
	go build -C cmd/jobctl -o ../../bin/jobctl .

pictures: ## make the pictures of the dashboard in docs, which needs a Chromium, and those of jobctl, which needs tmux
	go test -C dashboard/browsertest -count=1 -run '^TestPictures$$' . -args -pictures "$$PWD/docs/pictures"
	cd cmd/jobctl && go run ./internal/shoot -out ../../docs/pictures

examples: quickstart checksum webhook ledger order onboarding crawl crawler reports ## run every example that ends by itself

quickstart: ## run three jobs
	go run ./examples/quickstart

checksum: ## compute checksums of bolt, and check them with sha256sum
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/checksum -state "$$state" bolt && \
	sha256sum -c --quiet --strict "$$state/manifest.sha256"

webhook: ## deliver events to an endpoint with every fault
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/webhook -state "$$state/jobs.db"

ledger: ## move money between accounts, and check the sums
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/ledger -db "$$state/ledger.db"

order: ## run an order that waits for an approval
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/order -state "$$state" place 1042 12900 && \
	go run ./examples/order -state "$$state" approve 1042

onboarding: ## send a week of mails, in days of 200 ms
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/onboarding -db "$$state/onboarding.db" -day 200ms ada@example.com

crawl: ## read the documents of the library
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/crawl -db "$$state/crawl.db"

crawler: ## fetch the pages of six hosts, politely
	go run ./examples/crawler

reports: ## fire three schedules over a change of summer time
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
	go run ./examples/reports -db "$$state/reports.db" -at 2026-03-27T12:00:00Z >"$$state/first" && \
	go run ./examples/reports -db "$$state/reports.db" -at 2026-03-30T12:00:00Z
