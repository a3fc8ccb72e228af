// Command pulumi-resource-kubernetes serves the kubernetes resource plugin for the test bed.
//
// The plugin's own command embeds files that only its release process makes; the build copies the schema and the
// Terraform mapping out of the module beside this file and embeds those instead.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, terraformMapping)
}
