// SPDX-License-Identifier: Apache-2.0
#include "postrider/projection.hpp"

#include <utility>

#include "core/option_check.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

ProjectionOptions checked(ProjectionOptions options) {
  const OptionCheck check("ProjectionOptions");
  if (options.name.empty()) check.refuse("name", "''", "1 to 128 characters");
  check.text("name", options.name, 128);
  check.number("version", options.version, 1, 1'000'000'000);
  check.count("batch_size", options.batch_size, 1, 10'000);
  check.number("max_failures", options.max_failures, 1, 1'000'000);
  for (const QueueStatus status : options.statuses) {
    if (status == QueueStatus::pending || status == QueueStatus::processing) {
      check.refuse("statuses", std::string(to_string(status)), "statuses that events in the log have");
    }
  }
  if (options.retry_policy == nullptr)
    options.retry_policy = std::make_shared<ExponentialBackoffRetryPolicy>();
  return options;
}

class FunctionProjection final : public Projection {
 public:
  FunctionProjection(ProjectionOptions options, std::function<void(Tx&, const LogEntry&)> handle,
                     std::function<void(Tx&)> clear)
      : Projection(std::move(options)), handle_(std::move(handle)), clear_(std::move(clear)) {
    if (handle_ == nullptr) {
      throw Error(ErrorCode::invalid_argument, "projection '" + this->options().name + "' has no function");
    }
  }
  void handle(Tx& tx, const LogEntry& entry) override { handle_(tx, entry); }
  void clear(Tx& tx) override { clear_ != nullptr ? clear_(tx) : Projection::clear(tx); }

 private:
  std::function<void(Tx&, const LogEntry&)> handle_;
  std::function<void(Tx&)> clear_;
};

}  // namespace

Projection::Projection(ProjectionOptions options) : options_(checked(std::move(options))) {}

void Projection::clear(Tx& /*tx*/) {
  throw Error(ErrorCode::unsupported, "cannot empty the view of projection '" + options_.name + "'",
              "it does not say how", "override Projection::clear, or build a new version beside this one");
}

std::shared_ptr<Projection> make_projection(ProjectionOptions options,
                                            std::function<void(Tx&, const LogEntry&)> handle,
                                            std::function<void(Tx&)> clear) {
  return std::make_shared<FunctionProjection>(std::move(options), std::move(handle), std::move(clear));
}

std::string_view to_string(ProjectionState state) noexcept {
  switch (state) {
    case ProjectionState::active:
      return "ACTIVE";
    case ProjectionState::paused:
      return "PAUSED";
    case ProjectionState::failed:
      return "FAILED";
  }
  return "unknown";
}

}  // namespace postrider
