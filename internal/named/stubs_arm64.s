#include "textflag.h"

// A stub leaves the arguments where they are, registers and stack, and jumps to its
// closure with the context register set, as a call of the closure would. Each is
// five instructions: an address takes two.
#define STUB(i) MOVD $·closures+(8*(i))(SB), R26; MOVD (R26), R26; MOVD (R26), R19; JMP (R19)
#define STUBS8(i) STUB(i); STUB((i)+1); STUB((i)+2); STUB((i)+3); STUB((i)+4); STUB((i)+5); STUB((i)+6); STUB((i)+7)
#define STUBS64(i) STUBS8(i); STUBS8((i)+8); STUBS8((i)+16); STUBS8((i)+24); STUBS8((i)+32); STUBS8((i)+40); STUBS8((i)+48); STUBS8((i)+56)
#define STUBS512(i) STUBS64(i); STUBS64((i)+64); STUBS64((i)+128); STUBS64((i)+192); STUBS64((i)+256); STUBS64((i)+320); STUBS64((i)+384); STUBS64((i)+448)
#define STUBS4096(i) STUBS512(i); STUBS512((i)+512); STUBS512((i)+1024); STUBS512((i)+1536); STUBS512((i)+2048); STUBS512((i)+2560); STUBS512((i)+3072); STUBS512((i)+3584)

TEXT ·stubs(SB), NOSPLIT|NOFRAME, $0-0
	STUBS4096(0)
	STUBS4096(4096)
	RET

// func firstStub() unsafe.Pointer
TEXT ·firstStub(SB), NOSPLIT, $0-8
	MOVD $·stubs(SB), R0
	MOVD R0, ret+0(FP)
	RET
