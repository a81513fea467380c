# Every target works on a machine that has Go and nothing else, but for race and compare,
# which need a C compiler.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all fmt vet lint imports portable tidy test race fuzz bench allocs compare torture examples quickstart checksum webhook ledger

all: fmt vet lint imports portable tidy test

fmt: ## no file that gofmt would change
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change: $$files"; exit 1; fi

vet:
	go vet ./...

lint:
	go run $(STATICCHECK) ./...

imports: ## the direction of imports
	sh .ci/imports

portable: ## it builds for other systems, and where an int has 32 bits
	GOOS=linux GOARCH=386 go build ./...
	GOOS=windows go build ./...
	GOOS=darwin go build ./...

tidy: ## go.mod and go.sum are as go mod tidy leaves them
	go mod tidy -diff

test:
	go test ./...

race:
	go test -race -shuffle=on ./...

FUZZTIME = 20s
fuzz: ## every fuzz target for FUZZTIME
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done

BENCHTIME = 1s
bench: ## every Go benchmark for BENCHTIME; the comparison with other queues is in bench
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

allocs: ## allocations are as stored, and are compared indeed; ARGS=-update stores them
	@found=$$(go test -count=1 -v -run '^TestAllocations$$' . ./bolt ./worker $(ARGS)); failed=$$?; \
	echo "$$found" | grep -v '^=== '; test $$failed = 0 && ! echo "$$found" | grep -q -e '--- SKIP'

compare: ## the module that compares queues: checked, and run on small cases
	cd bench && go mod tidy -diff && go vet ./... && go run $(STATICCHECK) ./... && go test ./... && go run . -quick

torture: ## every family of faults, as much as for every change; TORTURE=-night for the night
	go run ./internal/torture $(TORTURE)

examples: quickstart checksum webhook ledger

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
