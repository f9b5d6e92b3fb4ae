// SPDX-License-Identifier: Apache-2.0
#if defined(POSTRIDER_WITH_WEBHOOK)
#include "postrider/webhook_sink.hpp"

#include <utility>

#include "app/sinks/kind.hpp"

namespace postrider::sinks {

Make read_webhook(config::Section& section, const Common& common) {
  using namespace std::chrono_literals;
  auto options = with_common<WebhookSinkOptions>(common);
  std::map<std::string, std::string> headers;
  // Whoever knows the path of a hook may post to it.
  section.secret("url", options.url)
      .secrets("secrets", options.secrets)
      .count("parallel", options.parallel, 1, 64)
      .flag("allow-private", options.allow_private)
      .flag("verify-tls", options.verify_tls)
      .text("ca-file", options.ca_file)
      .time("connect-timeout-ms", options.connect_timeout, 1ms, 1ms, 10min)
      .rest("header.", headers);
  options.headers.assign(headers.begin(), headers.end());
  section.finish();
  if (options.url.empty()) section.refuse("url", "it is missing", "write url = \"https://…\"");
  return make_by(webhook_sink, std::move(options));
}

}  // namespace postrider::sinks
#endif
