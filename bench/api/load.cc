#include "api/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "api/client.h"
#include "http/client.h"

namespace bench {

namespace {

using muster::api::Client;
using std::chrono::steady_clock;

double since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

double percentile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size()));
  return values.empty() ? 0 : values[std::min(values.size() - 1, at)];
}

muster::job::JobSpec load_job(size_t number, int gpus, const std::string& command) {
  muster::job::JobSpec spec{.name = "load-" + std::to_string(number),
                            .command = {"sh", "-c", command},
                            .resources = {.gpus = gpus},
                            .folder = "/"};
  for (const char* name : {"HOME", "LANG", "PATH", "PYTHONPATH", "USER"}) {
    spec.environment[name] = "/usr/local/bin:/usr/bin:/bin";
  }
  return spec;
}

}  // namespace

int submit(const std::filesystem::path& socket, size_t clients, size_t count, int gpus,
           const std::string& command) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::vector<double>> latencies(clients);
  const auto start = steady_clock::now();
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < clients; ++i) {
    threads.emplace_back([&, i] {
      Client client(socket);
      for (size_t number = next++; number < count && !failed; number = next++) {
        const auto began = steady_clock::now();
        const auto job =
            client.submit(load_job(number, gpus, command), "key-" + std::to_string(number));
        latencies[i].push_back(since(began));
        if (job) continue;
        std::fprintf(stderr, "bench_api: %s\n", job.error().to_string().c_str());
        failed = true;
      }
    });
  }
  threads.clear();
  const double seconds = since(start);
  std::vector<double> all;
  for (const auto& part : latencies) all.insert(all.end(), part.begin(), part.end());
  std::printf("{\"rate\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
              static_cast<double>(count) / seconds, percentile(all, 0.5) * 1000,
              percentile(all, 0.99) * 1000);
  return failed ? 1 : 0;
}

int list_and_get(const std::filesystem::path& socket, size_t jobs, size_t count) {
  muster::http::BlockingClient http(socket);
  std::mt19937 random(1);
  const auto timed = [&](std::vector<double>& latencies, const std::string& path,
                         const std::map<std::string, std::string>& query) -> bool {
    const auto began = steady_clock::now();
    const auto answer = http.send({.path = path, .query = query});
    latencies.push_back(since(began));
    if (answer && answer->status == 200) return true;
    std::fprintf(stderr, "bench_api: GET %s failed\n", path.c_str());
    return false;
  };
  const std::vector<std::map<std::string, std::string>> pages{
      {},
      {{"limit", "100"}, {"sort", "-submitted"}},
      {{"phase", "Failed"}, {"limit", "500"}},
      {{"sort", "name"}, {"limit", "100"}},
      {{"prefix", "filled-99"}},
      {{"owner", "nobody"}}};
  // Rows in other orders, searched and counted: the server examines every job for each of them.
  const std::vector<std::map<std::string, std::string>> rows{
      {{"limit", "50"}, {"sort", "-submitted"}, {"top", "true"}},
      {{"limit", "50"}, {"sort", "-submitted"}, {"count", "true"}},
      {{"limit", "50"}, {"sort", "-duration"}, {"phase", "ended"}},
      {{"limit", "50"}, {"sort", "owner"}, {"count", "true"}},
      {{"limit", "50"}, {"text", "filled-99 true"}, {"count", "true"}},
      {{"limit", "50"}, {"label", "!team"}, {"ended_after", "2030-01-01T00:00:00Z"}}};
  std::vector<double> lists;
  std::vector<double> row_pages;
  std::vector<double> gets;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "filled-" + std::to_string(random() % jobs);
    if (!timed(lists, "/v1/jobs", pages[i % pages.size()])) return 1;
    if (!timed(row_pages, "/v1/list", rows[i % rows.size()])) return 1;
    if (!timed(gets, "/v1/jobs/" + name, {})) return 1;
  }
  std::printf(
      "{\"list_p50_ms\": %.3f, \"list_p99_ms\": %.3f, \"rows_p50_ms\": %.3f, \"rows_p99_ms\": "
      "%.3f, "
      "\"get_p50_ms\": %.3f, \"get_p99_ms\": %.3f}\n",
      percentile(lists, 0.5) * 1000, percentile(lists, 0.99) * 1000,
      percentile(row_pages, 0.5) * 1000, percentile(row_pages, 0.99) * 1000,
      percentile(gets, 0.5) * 1000, percentile(gets, 0.99) * 1000);
  return 0;
}

}  // namespace bench
