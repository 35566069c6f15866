// What an image may be called: [HOST[:PORT]/]PATH[:TAG][@DIGEST], as registries and engines have
// it.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::job {

/// Why `text` names no image, in words that follow the name ("has no tag behind its ':'"); empty
/// where it does.
std::string fault_of_image_name(std::string_view text);

/// Where it is fetched from: "nvcr.io", "localhost:5000"; "docker.io" where it does not say.
std::string registry_of_image(std::string_view image);

/// "HOST", "HOST:PORT"; an address of IPv6 stands in brackets.
bool is_registry(std::string_view text);

// The rights of root's that Linux tells apart (capabilities(7)), by their names.
//
// Pure.

/// Those that Linux knows, as "SYS_PTRACE", sorted.
const std::vector<std::string>& capabilities();

/// As specs have them: "cap_sys_ptrace" is SYS_PTRACE.
std::string capability_of(std::string_view written);

/// The same of each.
std::vector<std::string> capabilities_of(const std::vector<std::string>& written);

}  // namespace muster::job
