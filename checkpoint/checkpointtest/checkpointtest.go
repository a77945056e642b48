// Package checkpointtest makes small checkpoints for tests: tensors with
// chosen or random values, written as a model directory.
package checkpointtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"deltafin/checkpoint"
)

// F32 returns a tensor of these values.
func F32(name string, values []float32, shape ...int) checkpoint.Tensor {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return tensor(name, "F32", data, shape)
}

// BF16 returns a tensor of these values, rounded to nearest, ties to even. NaN
// stays NaN.
func BF16(name string, values []float32, shape ...int) checkpoint.Tensor {
	data := make([]byte, 0, 2*len(values))
	for _, v := range values {
		bits := math.Float32bits(v)
		if v != v {
			bits |= 1 << 22
		} else {
			bits += 1<<15 - 1 + bits>>16&1
		}
		data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
	}
	return tensor(name, "BF16", data, shape)
}

// I32 returns a tensor of these values.
func I32(name string, values []int32, shape ...int) checkpoint.Tensor {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return tensor(name, "I32", data, shape)
}

// U8 returns a tensor of these bytes, which it keeps.
func U8(name string, values []byte, shape ...int) checkpoint.Tensor {
	return tensor(name, "U8", values, shape)
}

// tensor panics if data is not of the shape's size, as an index out of range
// would.
func tensor(name string, dtype checkpoint.DType, data []byte, shape []int) checkpoint.Tensor {
	if n, ok := dtype.Size(shape); !ok || n != int64(len(data)) {
		panic(fmt.Sprintf("checkpointtest: %s: %d bytes for %s %v", name, len(data), dtype, shape))
	}
	return checkpoint.Tensor{Name: name, DType: dtype, Shape: shape, Data: data}
}

// Normal returns n values of mean 0 and the given standard deviation, nearly
// normal: each is a sum of four uniform ones, at most 3.46 deviations. It is
// integer arithmetic but for one product, so that equal sources give equal
// values on every platform; rand's NormFloat64 calls math.Exp, which doesn't.
func Normal(r *rand.Rand, n int, deviation float64) []float32 {
	scale := deviation / 37837.23 // of the sum: 65536 √(4/12)
	values := make([]float32, n)
	for i := range values {
		sum := -2 * 65535
		for u := r.Uint64(); u != 0; u >>= 16 {
			sum += int(u & 65535)
		}
		values[i] = float32(float64(sum) * scale)
	}
	return values
}

// Bytes returns n random bytes.
func Bytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Dir writes a model directory that the test owns: one shard becomes
// model.safetensors, several become shards with an index. files are further
// files, by name. It returns the directory.
func Dir(t testing.TB, shards [][]checkpoint.Tensor, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	metadata := map[string]string{"format": "pt"}
	var err error
	if len(shards) == 1 {
		err = checkpoint.Write(filepath.Join(dir, checkpoint.SingleFile), shards[0], metadata)
	} else {
		err = checkpoint.WriteSharded(dir, shards, metadata)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
