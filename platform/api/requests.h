// How api::Client builds requests. Only for client*.cc.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <utility>

#include "api/client.h"
#include "api/wire.h"
#include "base/result.h"
#include "http/message.h"

namespace muster::api {

http::Request request_for(std::string method, std::string path);
http::Request request_for(std::string method, std::string path, std::string body);
/// The request that submits a job or an array.
http::Request submission(const job::JobSpec& spec, const Client::SubmitOptions& options);

/// The answer to a request with a document of T. People write job files, so the faults of the
/// server's error get the names of job files.
template <class T>
base::Result<http::Response> with_file_names(base::Result<http::Response> answer) {
  if (answer) return answer;
  return with_file_names<T>(std::move(answer).error());
}

/// kInvalid unless `name` is one segment of a path; otherwise the request would have another path.
/// `kind` names its kind, "job"; `advice` names the command that lists the existing ones.
base::Result<void> check_segment(const std::string& name, const std::string& kind,
                                 const std::string& advice);
base::Result<void> check_job_name(const std::string& name);
base::Result<void> check_project_name(const std::string& name);

}  // namespace muster::api
