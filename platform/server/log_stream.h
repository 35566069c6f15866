// A job's merged log as server-sent events: "log" for each record, "end" with the job at the end.
#pragma once

#include <memory>
#include <string>

#include "control/log_follower.h"
#include "http/message.h"

namespace muster::server {

class LogStream : public http::BodyStream {
 public:
  /// `job_name` is a job that exists now. The controller must outlive the stream.
  LogStream(control::Controller& controller, std::string job_name, const job::LogQuery& query);

  void pull(Deliver deliver) override;

 private:
  void append_end(std::string& text) const;

  control::Controller& controller_;
  std::string job_name_;
  std::unique_ptr<control::LogFollower> follower_;
  bool ended_ = false;
};

}  // namespace muster::server
