package gitsync

// TemplatePath is where an object of a kind holds its pod template.
func TemplatePath(kind string) []string {
	if kind == "PodTemplate" {
		return []string{"template"}
	}
	return []string{"spec", "template"}
}
