// load fills a cluster: it writes pods and what belongs to them straight into etcd, as JSON, which an API
// server reads as well as its own encoding. So a large cluster takes seconds, and no controller is needed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// writers is how many requests are under way at a time.
const writers = 32

// slicePods is how many pods the EndpointSlice controller puts into a slice.
const slicePods = 100

var (
	etcd      = flag.String("etcd", "", "the address of etcd")
	namespace = flag.String("namespace", "", "where to")
	name      = flag.String("name", "", "what the names of all objects begin with")
	services  = flag.Int("services", 0, "Services that share the pods; none: pods only, without slices")
	pods      = flag.Int("pods", 0, "pods")
	first     = flag.Int("first", 0, "number of the first pod, from which its address follows")
	size      = flag.Int("bytes", 0, "size of a pod, if it is more than a meshed pod needs")
	phase     = flag.String("phase", "Running", "phase of the pods; only running ones are ready")
	perSecond = flag.Int("per-second", 0, "objects per second at most; none: no limit")
	remove    = flag.Bool("delete", false, "delete the objects of this name instead")
)

// write is an object to put, or a key to delete if there is none.
type write struct {
	key    string
	object object
}

func main() {
	flag.Parse()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{*etcd}, DialTimeout: 5 * time.Second})
	check(err)
	writes := make(chan write, writers)
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			for it := range writes {
				apply(client, it)
			}
		})
	}
	send := limited(writes)
	if *remove {
		deletes(client, send)
	} else {
		createNamespace(client)
		puts(send)
	}
	close(writes)
	done.Wait()
}

// limited sends no more writes in a second than is wanted.
func limited(to chan<- write) func(write) {
	begun, sent := time.Now(), 0
	return func(it write) {
		if *perSecond > 0 {
			due := time.Duration(sent) * time.Second / time.Duration(*perSecond)
			time.Sleep(time.Until(begun.Add(due)))
		}
		sent++
		to <- it
	}
}

// puts writes each pod before the slice that names it, and Services at first.
func puts(send func(write)) {
	if *services == 0 {
		for number := *first; number < *first+*pods; number++ {
			send(pod(*name, number))
		}
		return
	}
	each := *pods / *services
	for index := range *services {
		from := *first + index*each
		service := serviceName(*name, index)
		send(replicaSet(service, each))
		send(serviceOf(service, from))
		for start := from; start < from+each; start += slicePods {
			end := min(start+slicePods, from+each)
			for number := start; number < end; number++ {
				send(pod(service, number))
			}
			send(slice(service, start, end))
		}
	}
}

// deletes asks for the keys in portions, and deletes each by itself, as a controller does.
func deletes(client *clientv3.Client, send func(write)) {
	for _, kind := range []string{"services/specs", "endpointslices", "pods", "replicasets"} {
		from := key(kind, *name+"-")
		end := clientv3.GetPrefixRangeEnd(from)
		for {
			options := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(10_000)}
			found, err := client.Get(context.Background(), from, options...)
			check(err)
			for _, it := range found.Kvs {
				send(write{key: string(it.Key)})
				from = string(it.Key) + "\x00"
			}
			if !found.More {
				break
			}
		}
	}
}

// createNamespace leaves one alone that is there: it has a UID of its own.
func createNamespace(client *clientv3.Client) {
	it := namespaceObject()
	value, err := json.Marshal(it.object)
	check(err)
	absent := clientv3.Compare(clientv3.CreateRevision(it.key), "=", 0)
	put := clientv3.OpPut(it.key, string(value))
	_, err = client.Txn(context.Background()).If(absent).Then(put).Commit()
	check(err)
}

func apply(client *clientv3.Client, it write) {
	if it.object == nil {
		_, err := client.Delete(context.Background(), it.key)
		check(err)
		return
	}
	value, err := json.Marshal(it.object)
	check(err)
	_, err = client.Put(context.Background(), it.key, string(value))
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
