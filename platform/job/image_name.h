// What an image may be called: [HOST[:PORT]/]PATH[:TAG][@DIGEST], as registries and engines have
// it.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster::job {

/// Why `text` names no image, in words that follow the name ("has no tag behind its ':'"); empty
/// where it does.
std::string fault_of_image_name(std::string_view text);

/// Where it is fetched from: "nvcr.io", "localhost:5000"; "docker.io" where it does not say.
std::string registry_of_image(std::string_view image);

/// "HOST", "HOST:PORT"; an address of IPv6 stands in brackets.
bool is_registry(std::string_view text);

}  // namespace muster::job
