// The objects, as the API server would have stored them.
package main

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

type object = map[string]any

// nodePods is how many pods a node has: the kubelet's own limit.
const nodePods = 110

// created is when everything was.
const created = "2026-12-01T00:00:00Z"

func key(kind, name string) string {
	return "/registry/" + kind + "/" + *namespace + "/" + name
}

// serviceName ends in a dash and a number, so that no name begins another's objects.
func serviceName(name string, index int) string { return fmt.Sprintf("%s-%d", name, index) }

func podName(owner string, number int) string { return fmt.Sprintf("%s-%07d", owner, number) }

func uid(kind, name string) string {
	h := sha1.Sum([]byte(kind + "/" + *namespace + "/" + name))
	return fmt.Sprintf("%x-%x-4%03x-8%03x-%x", h[0:4], h[4:6], int(h[6])<<4, int(h[7])<<4, h[8:14])
}

// podIP is in 10.128.0.0/9.
func podIP(number int) string {
	return fmt.Sprintf("10.%d.%d.%d", 128+number>>16, number>>8&255, number&255)
}

// clusterIP is in 10.96.0.0/12, where a Service has the place of its first pod.
func clusterIP(first int) string {
	return fmt.Sprintf("10.%d.%d.%d", 97+first>>16, first>>8&255, first&255)
}

func metadata(kind, name string, owner, labels object) object {
	it := object{
		"name": name, "namespace": *namespace, "uid": uid(kind, name),
		"creationTimestamp": created, "labels": labels,
	}
	if owner != nil {
		it["ownerReferences"] = []object{owner}
	}
	return it
}

func owner(version, kind, name string) object {
	return object{
		"apiVersion": version, "kind": kind, "name": name, "uid": uid(kind, name),
		"controller": true, "blockOwnerDeletion": true,
	}
}

func namespaceObject() write {
	return write{"/registry/namespaces/" + *namespace, object{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": object{
			"name": *namespace, "uid": uid("Namespace", ""), "creationTimestamp": created,
			"labels": object{"kubernetes.io/metadata.name": *namespace},
		},
		"spec":   object{"finalizers": []string{"kubernetes"}},
		"status": object{"phase": "Active"},
	}}
}

func replicaSet(name string, replicas int) write {
	labels := object{"app": name}
	return write{key("replicasets", name), object{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": metadata("ReplicaSet", name, owner("apps/v1", "Deployment", name), labels),
		"spec": object{
			"replicas": replicas,
			"selector": object{"matchLabels": labels},
			"template": object{
				"metadata": object{"labels": labels},
				"spec":     object{"containers": []object{{"name": "app", "image": "app:1"}}},
			},
		},
		"status": object{"replicas": replicas},
	}}
}

func serviceOf(name string, first int) write {
	ip := clusterIP(first)
	return write{key("services/specs", name), object{
		"apiVersion": "v1", "kind": "Service",
		"metadata": metadata("Service", name, nil, object{"app": name}),
		"spec": object{
			"type": "ClusterIP", "clusterIP": ip, "clusterIPs": []string{ip},
			"ipFamilies": []string{"IPv4"}, "ipFamilyPolicy": "SingleStack",
			"internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
			"selector": object{"app": name},
			"ports":    []object{{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}},
		},
		"status": object{"loadBalancer": object{}},
	}}
}

func slice(service string, start, end int) write {
	var endpoints []object
	for number := start; number < end; number++ {
		ready := *phase == "Running"
		name := podName(service, number)
		endpoints = append(endpoints, object{
			"addresses":  []string{podIP(number)},
			"conditions": object{"ready": ready, "serving": ready, "terminating": false},
			"nodeName":   nodeName(number),
			"zone":       fmt.Sprintf("zone-%c", 'a'+number%3),
			"targetRef": object{
				"kind": "Pod", "name": name, "namespace": *namespace, "uid": uid("Pod", name),
			},
		})
	}
	name := podName(service, start)
	labels := object{
		"kubernetes.io/service-name":             service,
		"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
	}
	return write{key("endpointslices", name), object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata":    metadata("EndpointSlice", name, owner("v1", "Service", service), labels),
		"addressType": "IPv4",
		"endpoints":   endpoints,
		"ports":       []object{{"name": "http", "port": 8080, "protocol": "TCP"}},
	}}
}

func nodeName(number int) string { return fmt.Sprintf("node-%d", number/nodePods) }

// pod is one into which the proxy was injected, with as many settings as it takes to be of its size. Without
// Services its owner isn't there: as that of a pod that was left over.
func pod(owned string, number int) write {
	name := podName(owned, number)
	return write{key("pods", name), podOf(owned, name, number, settings())}
}

// settings is how many of the proxy's settings fill up a pod.
var settings = sync.OnceValue(func() int {
	bare, err := json.Marshal(podOf(*name, podName(*name, *first), *first, 0))
	check(err)
	one, err := json.Marshal(setting(0))
	check(err)
	return max(0, *size-len(bare)) / (len(one) + 1)
})

func setting(index int) object {
	name := fmt.Sprintf("LINKERD2_PROXY_SETTING_NUMBER_%03d_WITH_A_NAME", index)
	return env(name, strings.Repeat("v", 26))
}

func env(name, value string) object { return object{"name": name, "value": value} }

func podOf(owned, name string, number, settings int) object {
	status, ip := "True", podIP(number)
	if *phase != "Running" {
		status = "False"
	}
	condition := func(kind string) object {
		return object{"type": kind, "status": status, "lastTransitionTime": created}
	}
	labels := object{
		"app": owned, "linkerd.io/control-plane-ns": "linkerd",
		"linkerd.io/proxy-deployment": owned, "linkerd.io/workload-ns": *namespace,
	}
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": metadata("Pod", name, owner("apps/v1", "ReplicaSet", owned), labels),
		"spec": object{
			"nodeName": nodeName(number), "serviceAccountName": "default",
			"containers":    []object{app(), proxy(settings)},
			"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
		},
		"status": object{
			"phase": *phase, "podIP": ip, "podIPs": []object{{"ip": ip}},
			"conditions": []object{condition("Ready"), condition("ContainersReady")},
		},
	}
}

func app() object {
	return object{
		"name": "app", "image": "app:1",
		"ports": []object{{"name": "http", "containerPort": 8080, "protocol": "TCP"}},
	}
}

func proxy(settings int) object {
	values := []object{
		env("LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "0.0.0.0:4143"),
		env("LINKERD2_PROXY_ADMIN_LISTEN_ADDR", "0.0.0.0:4191"),
		env("LINKERD2_PROXY_CONTROL_LISTEN_ADDR", "0.0.0.0:4190"),
	}
	for index := range settings {
		values = append(values, setting(index))
	}
	return object{
		"name": "linkerd-proxy", "image": "proxy:1", "env": values,
		"ports": []object{{"name": "linkerd-proxy", "containerPort": 4143, "protocol": "TCP"}},
	}
}
