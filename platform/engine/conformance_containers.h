// For tests: the common parts of the tests of the container engine.
#pragma once

#include <filesystem>
#include <string>

#include "engine/conformance.h"
#include "engine/container/container_engine.h"

namespace muster::engine {

inline constexpr const char* kTestHost = "node-1";

/// Of the engine that tests run on, and the image that their tasks run in.
std::string test_socket();
std::string test_image();
/// The label of all that a test's server makes.
std::string test_owner(const std::filesystem::path& jobs_folder);

ContainerEngineOptions test_options(BenchOptions options);

}  // namespace muster::engine
