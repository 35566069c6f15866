// A scripted slurmrestd for tests. It gives scripted answers on a unix socket and on a port of the
// loopback interface, with its own loop and thread, and records the requests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "http/server.h"
#include "http/test_server.h"

namespace muster::engine::slurm {

/// A request, without its headers and body.
struct Asked {
  std::string what;  ///< "GET /slurm/v0.0.40/jobs/"
  http::Query query;
  http::Headers headers;
  std::string body;
};

class ScriptedSlurmrestd {
 public:
  using Answer = std::function<http::Response(const Asked&)>;

  ScriptedSlurmrestd()
      : server_([this](const http::Request& request, const http::Respond& respond) {
          respond(answer_to(request));
        }) {}

  std::filesystem::path socket() const { return server_.socket(); }

  /// `what`: "GET /slurm/v0.0.40/jobs/". The last answer for a path counts.
  void answer(const std::string& what, Answer answer) {
    const std::scoped_lock lock(mutex_);
    answers_[what] = std::move(answer);
  }
  void answer(const std::string& what, std::string body, int status = 200) {
    answer(what, [body = std::move(body), status](const Asked&) {
      http::Response response{.status = status};
      response.body = body;
      return response;
    });
  }

  /// Serves this version, according to its description.
  void serve(const std::vector<std::string>& names, bool cancels_many = false) {
    std::string paths;
    const auto add = [&](const std::string& path, const std::string& methods) {
      paths += (paths.empty() ? "" : ",") + ("\"" + path + "\":{" + methods + "}");
    };
    for (const std::string& name : names) {
      const bool is_old = name < "v0.0.40";
      const std::string slash = is_old ? "" : "/";
      const std::string slurm = "/slurm/" + name;
      add(slurm + "/ping" + slash, R"("get":{})");
      add(slurm + "/nodes" + slash, R"("get":{"parameters":[{"name":"update_time"}]})");
      add(slurm + "/jobs" + slash,
          cancels_many ? R"("get":{},"delete":{"summary":"signal jobs"})" : R"("get":{})");
      add(slurm + "/job/submit", R"("post":{})");
      add(slurm + "/job/{job_id}", R"("get":{},"delete":{})");
      add("/slurmdb/" + name + "/job/{job_id}", R"("get":{})");
    }
    answer("GET /openapi/v3", R"({"openapi":"3.0.3","info":{"title":"Slurm REST API"},"paths":{)" +
                                  paths + R"(},"components":{"schemas":{}}})");
  }

  std::vector<Asked> asked() {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }
  Asked last() {
    const auto all = asked();
    return all.empty() ? Asked{} : all.back();
  }
  size_t count(const std::string& what) {
    size_t found = 0;
    for (const Asked& one : asked()) found += one.what == what ? 1 : 0;
    return found;
  }

 private:
  http::Response answer_to(const http::Request& request) {
    Asked one{.what = request.method + " " + request.path,
              .query = request.query,
              .headers = request.headers,
              .body = request.body};
    Answer answer;
    {
      const std::scoped_lock lock(mutex_);
      asked_.push_back(one);
      const auto found = answers_.find(one.what);
      if (found != answers_.end()) answer = found->second;
    }
    if (answer) return answer(one);
    http::Response unknown{.status = 404, .content_type = "text/plain"};
    unknown.body = "Unable find requested URL. Please view /openapi/v3 for API reference.";
    return unknown;
  }

  std::mutex mutex_;
  std::map<std::string, Answer> answers_;
  std::vector<Asked> asked_;
  http::TestServer server_;  ///< last: its thread uses the other members
};

}  // namespace muster::engine::slurm
