#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace muster::base {

namespace {

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("muster", std::move(sink));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger->flush_on(spdlog::level::info);
  return logger;
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance =
      make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return instance;
}

}  // namespace

void log_info(std::string_view text) {
  logger()->info("{}", text);
}
void log_warning(std::string_view text) {
  logger()->warn("{}", text);
}
void log_error(std::string_view text) {
  logger()->error("{}", text);
}

}  // namespace muster::base
