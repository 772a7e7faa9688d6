// The pages in the order of their tabs. README.md describes a page object.
import { clusterPage } from "./cluster/page.js";
import { pendingPage } from "./pending/page.js";
import { tryPage } from "./try/page.js";
import { admissionsPage } from "./admissions/page.js";
import { policyPage } from "./policy/page.js";

export const pages = [clusterPage, pendingPage, tryPage, admissionsPage, policyPage];
