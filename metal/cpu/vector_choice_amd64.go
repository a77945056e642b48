//go:build !noasm

package cpu

var avx2Vectors = vectors{
	expSum:      expSumAVX2,
	sigmoids:    sigmoidsAVX2,
	silus:       silusAVX2,
	mulSigmoids: mulSigmoidsAVX2,
	situs:       situsAVX2,
	gates:       gatesAVX2,
	adds:        addsAVX2,
	addScaleds:  addScaledsAVX2,
	scales:      scalesAVX2,
	normScales:  normScalesAVX2,
	sumSquares:  sumSquaresAVX2,
	resDots:     resDotsAVX2,
	mix:         mixAVX2,
	above:       aboveAVX2,
	largest:     largestAVX2,
	convolve16:  convolveAVX2,
	kdaStep32:   kdaStep32AVX2,
}

var avx512Vectors = vectors{
	expSum:      expSumAVX512,
	sigmoids:    sigmoidsAVX512,
	silus:       silusAVX512,
	mulSigmoids: mulSigmoidsAVX512,
	situs:       situsAVX512,
	gates:       gatesAVX512,
	adds:        addsAVX512,
	addScaleds:  addScaledsAVX512,
	scales:      scalesAVX512,
	normScales:  normScalesAVX512,
	sumSquares:  sumSquaresAVX512,
	resDots:     resDotsAVX512,
	mix:         mixAVX512,
	above:       aboveAVX512,
	largest:     largestAVX512,
	convolve16:  convolveAVX512,
	kdaStep32:   kdaStep32AVX512,
}
