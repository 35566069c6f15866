// Names of images, [HOST[:PORT]/]PATH[:TAG][@DIGEST], and the capabilities of Linux
// (capabilities(7)).
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::job {

/// The fault of an image name, as the rest of a sentence ("has no valid tag after its last ':'");
/// empty: the name is valid.
std::string fault_of_image_name(std::string_view text);

/// The registry in the name: "nvcr.io", "localhost:5000"; "docker.io" if the name has no registry.
std::string registry_of_image(std::string_view image);

/// "HOST" or "HOST:PORT"; an IPv6 address is in brackets.
bool is_registry(std::string_view text);

/// All capabilities of Linux, as "SYS_PTRACE", sorted.
const std::vector<std::string>& capabilities();

/// The spelling of specs: "cap_sys_ptrace" becomes SYS_PTRACE.
std::string capability_of(std::string_view written);

/// capability_of() of each.
std::vector<std::string> capabilities_of(const std::vector<std::string>& written);

}  // namespace muster::job
