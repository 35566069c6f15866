// For tests: the common parts of the tests of the Kubernetes engine on a real cluster, which KUBECONFIG
// names (tests/kubernetes_engine.py). MUSTER_TEST_IMAGE is the image of tasks, MUSTER_NODE_IMAGE the
// one with muster-node; MUSTER_TEST_ADDRESS is this machine's address for pods, and
// MUSTER_TEST_STORAGE a persistent volume claim.
#pragma once

#include <filesystem>
#include <string>

#include "engine/conformance.h"
#include "engine/kubernetes/options.h"

namespace muster::engine {

/// The name of a test's server, a label of its objects.
std::string test_owner(const std::filesystem::path& jobs_folder);

/// `are_called`: pods call the server; otherwise it connects to them.
kubernetes::KubernetesOptions test_options(BenchOptions options, bool are_called);

/// Deletes all objects of that server and waits until its pods are gone.
void clear_kubernetes(const std::filesystem::path& jobs_folder);

}  // namespace muster::engine
