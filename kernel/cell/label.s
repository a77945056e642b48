// This file lets label.go declare a function without a body.
