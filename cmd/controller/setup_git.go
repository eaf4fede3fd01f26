package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	gitcontroller "github.com/pushback-dev/pushback/gitsync/controller"
	"github.com/pushback-dev/pushback/routers"
)

func setUpGit(mgr ctrl.Manager, s settings, routerFor func(*v1alpha1.RolloutTrafficRouting) (routers.Router, error)) error {
	err := gitcontroller.SetupWithManager(mgr, gitcontroller.Options{
		RouterFor:             routerFor,
		DefaultServiceAccount: s.defaultServiceAccount,
		ClusterName:           s.clusterName,
		AllowFileURLs:         s.allowFileURLs,
		Concurrent:            s.concurrent,
		Now:                   now,
	})
	if err != nil {
		return fmt.Errorf("setting up the Git controllers: %w", err)
	}
	return nil
}
