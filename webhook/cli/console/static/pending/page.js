// The page Pending: the pods that wait, why, and what would make room for them.
import { message } from "../lib/widgets.js";
import { t } from "../lib/i18n.js";
import { texts } from "./texts.js";

export const pendingPage = {
  id: "pending",
  texts,
  mount(root) {
    root.append(message(t("pending.title")));
  },
};
