// Reads a device metadata file as Kubernetes' own consumers do, and says what is in it.
// Standard input: the file. Standard output: the object, in the newest version.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
)

func main() {
	var read v1beta1.DeviceMetadata
	decoder := json.NewDecoder(os.Stdin)
	if err := devicemetadata.DecodeMetadataFromStream(decoder, &read); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(read); err != nil {
		panic(err)
	}
}
