//go:build !noasm

#include "textflag.h"

// func pause(n int)
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0
loop:
	YIELD
	SUBS $1, R0
	BNE  loop
	RET
