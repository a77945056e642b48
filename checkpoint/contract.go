package checkpoint

// Contract for now; the author of checkpoint replaces this file.

type DType string // "BF16", "F32", "U8", "I32", "I64", …, safetensors' names

// Tensor is a view of one tensor; Data is mapped memory, valid until the snapshot's Close.
type Tensor struct {
	Name  string
	File  string
	DType DType
	Shape []int
	Data  []byte
}

// Snapshot is an opened checkpoint directory: model.safetensors, or shards under model.safetensors.index.json.
type Snapshot struct{}

func Open(dir string) (*Snapshot, error)              { panic("contract only") }
func (s *Snapshot) Close() error                      { panic("contract only") }
func (s *Snapshot) Names() []string                   { panic("contract only") } // sorted
func (s *Snapshot) Tensor(name string) (Tensor, bool) { panic("contract only") }

// Want is Tensor with its dtype and shape checked; the error is a *TensorError.
func (s *Snapshot) Want(name string, dtype DType, shape ...int) (Tensor, error) {
	panic("contract only")
}

type TensorError struct{ Tensor, File, Want, Got string }

func (e *TensorError) Error() string { panic("contract only") }

// Write writes a safetensors file by rename: tensors in the given order.
func Write(file string, tensors []Tensor, metadata map[string]string) error { panic("contract only") }
