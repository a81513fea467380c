package system

import "testing"

func TestJetStream(t *testing.T)     { testServer(t, JetStream()) }
func TestPawlJetStream(t *testing.T) { testServer(t, PawlJetStream()) }
