package driver

import "github.com/gopawl/pawl"

// CheckOverride checks the limits that an operator sets for a queue in place of those that the program
// declares. An override keeps the order and the turns of keys, on which the program relies.
func CheckOverride(declared, l pawl.Limits) error {
	switch {
	case l.InOrder != declared.InOrder:
		return invalid("InOrder", "the program declares %s, and an operator cannot change the order of keys; change the program", declared.InOrder)
	case l.Fair != declared.Fair:
		return invalid("Fair", "the program declares %v, and an operator cannot change the turns of keys; change the program", declared.Fair)
	}
	return l.Validate()
}

// Override returns the limits in force when a program declares limits and an operator has set others.
func Override(declared, set pawl.Limits) pawl.Limits {
	if set.InOrder, set.Fair = declared.InOrder, declared.Fair; set.InOrder != pawl.OrderNone {
		set.RunningPerKey = min(set.RunningPerKey, 1)
	}
	return set
}
