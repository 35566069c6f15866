// How api::Client puts a request together. For client.cc and its neighbours alone.
//
// Pure; thread-safe.
#pragma once

#include <string>

#include "base/result.h"
#include "http/message.h"

namespace muster::api {

http::Request request_for(std::string method, std::string path);
http::Request request_for(std::string method, std::string path, std::string body);

/// kInvalid unless `name` makes one segment of a path; any other would ask for something else.
/// `kind` is what it should be, "job"; `advice`: where to see which there are.
base::Result<void> check_segment(const std::string& name, const std::string& kind,
                                 const std::string& advice);
base::Result<void> check_job_name(const std::string& name);
base::Result<void> check_project_name(const std::string& name);

}  // namespace muster::api
