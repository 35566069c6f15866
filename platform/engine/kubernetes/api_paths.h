// The paths of the API, and the phrases by which errors name objects.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "engine/kubernetes/api_client.h"
#include "http/url.h"

namespace muster::engine::kubernetes {

/// "/api/v1/namespaces/lab/pods/x/log?follow=true", percent-encoded. An empty `space` means all
/// namespaces, an empty `name` the collection.
std::string target_of(const Resource& resource, std::string_view space, std::string_view name,
                      const http::Query& query = {}, std::string_view subresource = {});

/// "pods", "pods/status"
std::string with_subresource(const Resource& resource, std::string_view subresource);

/// "pods 'x' in namespace 'lab'"
std::string described(const ObjectName& name);
/// "pods with muster.dev/job=x in namespace 'lab'", "nodes"
std::string described(const Selection& which);

}  // namespace muster::engine::kubernetes
