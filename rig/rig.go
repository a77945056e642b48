// Package rig assembles a device, a model and its tokenizer, and keeps them warm:
// it is what a cell and the command line talk to, and the only package that knows
// every implementation.
package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/metal"
	"deltafin/metal/cpu"
	"deltafin/models"
	"deltafin/prefetch"
	"deltafin/tokenizer"
)

const maxThreads = 1024

// DefaultModel is the embedded model that an empty Options.Model means.
const DefaultModel = "nano-k3"

// Rig holds a warm model. Its methods may be called from any goroutine; requests
// that compute run one at a time, in order of arrival.
type Rig struct {
	name, path string
	snapshot   *checkpoint.Snapshot
	device     metal.Device
	model      *engine.Model
	tok        *tokenizer.Tokenizer
	loadTime   time.Duration
	loads      int // of weights

	turn   chan struct{} // holds one token: who has it computes
	closed chan struct{} // closed by Close
	close  sync.Once

	mu     sync.Mutex    // guards what follows
	loaded time.Duration // load time not yet shown by a request
	kept   states
}

// Open loads a model; the caller closes the Rig. The error says what to mend.
func Open(ctx context.Context, o Options) (_ *Rig, err error) {
	begin := time.Now()
	r := &Rig{turn: make(chan struct{}, 1), closed: make(chan struct{}), kept: newStates(0)}
	defer func() {
		if err != nil {
			r.release()
		}
	}()
	spine, ok := spines[o.Spine]
	if !ok {
		return nil, &engine.SettingError{Name: "spine", Want: "bf16 (as stored) or bf12 (packed without loss)", Got: o.Spine}
	}
	files, err := r.find(o)
	if err != nil {
		return nil, err
	}
	config, err := engine.ReadConfig(files, r.path)
	if err != nil {
		return nil, err
	}
	if r.tok, err = tokenizer.LoadFS(files, config.VocabSize); err != nil {
		return nil, err
	}
	if r.path != "" {
		r.snapshot, err = checkpoint.Open(r.path)
	} else {
		r.snapshot, err = checkpoint.OpenFS(files)
	}
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.device = cpu.Open(cpu.Options{Threads: o.Threads})
	if o.Watch != nil {
		r.device = o.Watch(r.device)
	}
	if r.model, err = engine.Load(config, r.snapshot, r.device, spine); err != nil {
		return nil, err
	}
	r.loads++
	r.loadTime = time.Since(begin)
	r.loaded = r.loadTime
	r.turn <- struct{}{}
	return r, nil
}

// spines are the formats by Options.Spine.
var spines = map[string]metal.Format{"": metal.BF16, "bf16": metal.BF16, "bf12": metal.BF12}

// find locates the model's files and names the model.
func (r *Rig) find(o Options) (fs.FS, error) {
	if o.Threads < 0 || o.Threads > maxThreads {
		return nil, &engine.SettingError{Name: "threads", Want: fmt.Sprintf("a count from 0 to %d (0 means one for each CPU)", maxThreads), Got: fmt.Sprint(o.Threads)}
	}
	name := o.Model
	if name == "" {
		name = DefaultModel
	}
	if slices.Contains(models.Names(), name) {
		cache := o.CacheDir
		if dir, err := os.UserCacheDir(); err == nil && cache == "" {
			cache = filepath.Join(dir, "deltafin") // else "": unpacked into memory, not where others can write
		}
		files, dir, err := models.Open(cache, name)
		r.name, r.path = name, dir
		return files, err
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &ModelError{name, "no such directory"}
	case err != nil:
		return nil, &ModelError{name, err.Error()}
	case !info.IsDir():
		return nil, &ModelError{name, "a file"}
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	r.name, r.path = filepath.Base(abs), abs
	return os.DirFS(abs), nil
}

// A ModelError is a model that can't be found.
type ModelError struct{ Model, Got string }

func (e *ModelError) Error() string {
	return fmt.Sprintf("model %s: want the directory of a K3 snapshot, or %s for the embedded one, got %s", e.Model, DefaultModel, e.Got)
}

// Close waits for a running request, then releases the model. Requests that wait or
// come later get ErrClosed.
func (r *Rig) Close() (err error) {
	r.close.Do(func() {
		close(r.closed)
		<-r.turn // never given back
		err = r.release()
	})
	return err
}

// ErrClosed is what requests get after Close.
var ErrClosed = errors.New("rig: the model was closed")

func (r *Rig) release() error {
	var errs []error
	if r.model != nil {
		errs = append(errs, r.model.Source.Close())
	}
	if r.device != nil {
		errs = append(errs, r.device.Close())
	}
	if r.snapshot != nil {
		errs = append(errs, r.snapshot.Close())
	}
	return errors.Join(errs...)
}

// take waits for the turn to compute; done gives it back.
func (r *Rig) take(ctx context.Context) (done func(), err error) {
	select {
	case <-r.closed:
		return nil, ErrClosed
	default:
	}
	select {
	case <-r.turn:
		return func() { r.turn <- struct{}{} }, nil
	case <-r.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Tokenizer is the model's.
func (r *Rig) Tokenizer() *tokenizer.Tokenizer { return r.tok }

// PrefetchStats are the expert source's counters since the model was loaded; it
// answers at once, also while a request computes.
func (r *Rig) PrefetchStats() prefetch.Stats { return r.model.Source.Stats() }

// Info describes the loaded model.
func (r *Rig) Info() ModelInfo {
	m := r.model
	info := ModelInfo{
		Name: r.name, Path: r.path,
		Layers: m.NumHiddenLayers, KDALayers: len(m.LinearAttn.KDALayers), MLALayers: len(m.LinearAttn.FullAttnLayers),
		Hidden: m.HiddenSize, Vocab: m.VocabSize,
		Experts: m.NumExperts, TopK: m.NumExpertsPerToken, SharedExperts: m.NumSharedExperts,
		MoELayers: m.NumHiddenLayers - m.FirstKDenseReplace, Parameters: m.Parameters,
		SpineBytes: m.SpineBytes, ExpertsBytes: m.ExpertsBytes, MaxPositions: m.MaxPositionEmbeddings,
		LoadTime: r.loadTime, Threads: r.device.Threads(), Device: r.device.Name(),
	}
	if n := int64(info.MoELayers) * int64(info.Experts); n > 0 {
		info.ExpertBytes = info.ExpertsBytes / n
	}
	return info
}

// Memory says what the model occupies.
func (r *Rig) Memory() MemoryMap {
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	rss, peak := residentBytes()
	m := MemoryMap{SpineMapped: r.model.SpineBytes - r.model.PackedBytes, SpinePacked: r.model.PackedBytes, ExpertsMapped: r.model.ExpertsBytes, Heap: int64(heap.HeapInuse), RSS: rss, PeakRSS: peak}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept.list {
		m.KeptStates += k.seq.Bytes()
		m.KeptSequences++
	}
	return m
}

// Reset forgets kept states; the weights stay. IDs of earlier generations mean
// nothing from then on.
func (r *Rig) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = newStates(r.kept.counter)
}
