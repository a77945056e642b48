//go:build !noasm

package cpu

// neonVectors are the loops in NEON, which take four elements at a time; the definition
// takes the last ones, and what has no loop yet.
func neonVectors() vectors {
	k := portableVectors
	k.sigmoids = whole2(sigmoidsNEON, sigmoids)
	k.silus = whole2(silusNEON, silus)
	k.mulSigmoids = whole2(mulSigmoidsNEON, mulSigmoids)
	k.expSum = func(y, x []float32, top float32) float32 {
		n := len(y) &^ 3
		exps := func(y, x []float32) {
			for i, v := range x {
				y[i] = exp(v - top)
			}
		}
		exps(y[n:], x[n:len(y)])
		expsNEON(y[:n], x[:n], top)
		var acc [lanes]float32
		for i, v := range y {
			acc[i%lanes] += v
		}
		return fold(&acc)
	}
	k.situs = func(y, g, u []float32, beta, lambda, invBeta, invLambda float32) {
		n := len(y) &^ 3
		situsNEON(y[:n], g[:n], u[:n], beta, lambda, invBeta, invLambda)
		situs(y[n:], g[n:], u[n:], beta, lambda, invBeta, invLambda)
	}
	k.gates = func(y, x, bias []float32, rate, lower float32) {
		n := len(y) &^ 3
		gatesNEON(y[:n], x[:n], bias[:n], rate, lower)
		gates(y[n:], x[n:], bias[n:], rate, lower)
	}
	k.scales = func(y, x []float32, a float32) {
		n := len(y) &^ 3
		scalesNEON(y[:n], x[:n], a)
		scales(y[n:], x[n:], a)
	}
	k.normScales = func(y, x, w []float32, a float32) {
		n := len(y) &^ 3
		normScalesNEON(y[:n], x[:n], w[:n], a)
		normScales(y[n:], x[n:], w[n:], a)
	}
	k.kdaStep32 = kdaStep32NEON
	return k
}

// whole2 is a function that takes multiples of four elements, and rest for the others.
func whole2(four, rest func(y, x []float32)) func(y, x []float32) {
	return func(y, x []float32) {
		n := len(y) &^ 3
		four(y[:n], x[:n])
		rest(y[n:], x[n:])
	}
}
