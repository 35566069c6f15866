#include "base/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

namespace muster::base {

namespace {

constexpr size_t kFileSize = 8 << 20;
constexpr size_t kFilesKept = 3;

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

void log_to_file(const std::filesystem::path& path) {
  // Children never see the descriptor: subprocess.cc closes what is not handed over.
  try {
    logger() = make_logger(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
        path.string(), kFileSize, kFilesKept));
    ::chmod(path.c_str(), 0600);
  } catch (const spdlog::spdlog_ex& error) {
    log_error(error.what());
  }
}

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
