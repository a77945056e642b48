//go:build !noasm

package cpu

import "unsafe"

// neonVectors are the loops in NEON, which take four elements at a time; the definition
// takes the last ones, and what has no loop.
func neonVectors() vectors {
	k := portableVectors
	k.sigmoids = fours(sigmoidsNEON, sigmoids)
	k.silus = fours(silusNEON, silus)
	k.mulSigmoids = fours(mulSigmoidsNEON, mulSigmoids)
	k.adds = fours(addsNEON, adds)
	k.expSum = func(y, x []float32, top float32) float32 {
		n := len(y) &^ 3
		expsNEON(y[:n], x[:n], top)
		for i := n; i < len(y); i++ {
			y[i] = exp(x[i] - top)
		}
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
	k.addScaleds = func(y, x []float32, a float32) {
		n := len(y) &^ 3
		addScaledsNEON(y[:n], x[:n], a)
		addScaleds(y[n:], x[n:], a)
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
	k.sumSquares = func(x []float32) float32 { return neonDot(x, x) }
	k.resDots = func(v, w []float32) (product, squares float32) { return neonDot(v, w), neonDot(v, v) }
	k.mix = func(y []float32, vs *[]float32, stride, offset int, p []float32) {
		clear(y)
		n := len(y) &^ 15
		for j, w := range p {
			v := (*(*[]float32)(unsafe.Add(unsafe.Pointer(vs), j*stride)))[offset:][:len(y)]
			if n > 0 {
				axpyNEON(&y[0], w, &v[0], n)
			}
			axpy(y[n:], w, v[n:])
		}
	}
	k.convolve16 = convolveNEON
	k.kdaStep32 = kdaStep32NEON
	return k
}

// fours is a function that takes multiples of four elements, and rest for the others.
func fours(four, rest func(y, x []float32)) func(y, x []float32) {
	return func(y, x []float32) {
		n := len(y) &^ 3
		four(y[:n], x[:n])
		rest(y[n:], x[n:])
	}
}

// neonDot is dot(a, b).
func neonDot(a, b []float32) float32 {
	if len(a)%lanes != 0 || len(a) == 0 {
		return dot(a, b)
	}
	return dotNEON(&a[0], &b[0], len(a))
}
