//go:build !noasm

#include "textflag.h"

// func pause(n int)
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX
loop:
	PAUSE
	DECQ CX
	JNZ  loop
	RET
